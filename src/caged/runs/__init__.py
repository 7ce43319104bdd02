"""One experiment, from a specification to a run folder.

`spec`, `protocols` and `presets` say what is to be done; `loading` brings the data, `execute` tells the story of a run,
`train` is its longest chapter, `folder` knows what lies where; `results` keeps the small files for version control;
`artefact` and `recommender` are what is left when training is over.
"""
