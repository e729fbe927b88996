"""The results viewer: a small server over the pages of ``reports.html``, for one folder of results."""
