"""Adapters to models and services; each needs an optional extra and is loaded on first use."""
