"""Probes that the user asks for, what to probe, and what is known from earlier ones."""
