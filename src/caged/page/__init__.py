"""Results as pages: charts without dependencies, and self-contained HTML (extra `report`)."""
