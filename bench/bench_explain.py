"""Explanations on one pinned core against the packages of the field with PyTorch, same weights, same image."""
from explain_lime import lime_rows
from setting import folder
from table import Table

table = Table("explain", folder)
lime_rows(table)
table.finish()
