"""Shapes of real models: reading their configurations, finding bottlenecks, recommending depth and width."""
