"""The system under audit and its adapters."""
