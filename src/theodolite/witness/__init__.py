"""Explicit networks that prove a task expressible, and compilers that make them; nothing here is trained."""
