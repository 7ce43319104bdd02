"""What people come for, one folder each. A product uses another one through the names of its package only."""
