"""Numbers, tables, charts and self-contained HTML (extra `report`): drawing only, no product is known here."""
