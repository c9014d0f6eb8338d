"""Other people's kernels, called on m3gen's inputs. Nothing of theirs is kept here: see each module."""
