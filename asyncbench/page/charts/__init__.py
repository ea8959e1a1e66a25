"""Charts and pictures: rows and Vega-Lite specifications."""
