"""The engine of Medusa Chat: Medusa decoding for small GPUs, without any Qt."""

__version__ = "0.2.0"
# Terms of this program's own code and documents. Packages, documents and the About dialog repeat
# them; tests/unit/installer/licences/test_own_licence.py names every place.
LICENCE = "No licence has been chosen yet: all rights are reserved."
LICENCE_ID = "LicenseRef-proprietary"  # SPDX's form, which packages and software centres read
