"""Token trees and records of a step: shape, mask, and the search for the best tree."""
