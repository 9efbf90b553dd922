"""The page of `theodolite serve`: a small server on this machine that reads one folder and asks the instruments.

Every part of the page is a thin call of a function that a command has too; the page shows what it gives back. starlette
and uvicorn are imported here and nowhere else.
"""
