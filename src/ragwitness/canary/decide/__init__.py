"""What scores show: exact p-values, anytime-valid evidence, bounds, and the verdict."""
