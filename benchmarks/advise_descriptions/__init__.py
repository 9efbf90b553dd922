"""Descriptions of model types, found by experiment: how many parameters a model has, in its configuration's fields.

Each type's default configuration is built by `transformers` on the meta device, then again with one field changed, then
with many changed at once. From how the tensors' sizes answer, formulas are found: polynomials in the fields with
rational coefficients, by part of the model, and under which flags they hold. A description is kept only if it counts
further random configurations to the last parameter, first ones of its own experiments (`describe`), then ones drawn as
`benchmarks/advise.py` draws them (`trial`). Fields that changed nothing are listed as harmless; those whose effect no
formula caught are listed as fixed, and only their default is described.

    PYTHONPATH=src:. python -m benchmarks.advise_descriptions --folder found --table table.json.gz --report report.json

makes the whole table with the installed transformers; nothing but the library decides what is in it. Each type's answer
is kept in the folder, so that the same command goes on where it was stopped, and several may share the work (`--part
0/2`, `--part 1/2`). `--report` says of every type that is left out why.
"""
