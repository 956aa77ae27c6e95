"""Sets up an installed Medusa Chat for its user, starts it, updates, repairs and removes it.

Standard library only, Python 3.10 or newer, since it runs before anything is installed.

A system package puts these files into one folder, PROGRAM (`carried_files` lists them):

    PROGRAM/launch.py                 `launch.py medusa ARGS` and `launch.py medusa-chat ARGS`
    PROGRAM/installer/…               this package and the modules beside it that it imports
    PROGRAM/medusa_chat-….whl         the program itself, with the version of each package it needs
    PROGRAM/uv (uv.exe)               makes environments and fetches packages
    PROGRAM/icon.png                  optional: of the window of the first start

It is read only. What is made for a user lies in a folder of that user (`folders.py`):

    versions/VERSION/                 an environment with the program in that version
    current.json, settings.json       which version runs; where packages come from
    cache/                            of uv: an installation that was cut short goes on with it
    models/                           the model of the first start, if it was wanted
    python/                           where the system has no suitable Python
    log/                              what uv said

From the top down: `cli` (words of the command line), `window` and `terminal` (ask and show),
`update`, `repair`, `uninstall`, `start`; `installation` (makes a version) with `environment`,
`torch_source`, `first_model`, `space`; `uv` with `sources`; `program`, `current`, `settings`,
`folders`, `files`.
"""
