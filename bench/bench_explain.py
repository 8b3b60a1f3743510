"""Explanations on one pinned core against the packages of the field with PyTorch, same weights, same image."""
from explain_cam import gradcam_rows
from explain_lime import lime_rows
from setting import folder
from table import Table

table = Table("explain", folder)
gradcam_rows(table)
lime_rows(table)
table.finish()
