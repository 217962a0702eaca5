"""Configuration of the documentation site, which `scripts/docs` builds."""

import shutil
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
for generated in ("reference/generated", "measurements"):
    shutil.rmtree(HERE / generated, ignore_errors=True)  # pages of what no longer exists

import pertinent

project = "pertinent"
author = "The pertinent developers"
copyright = author
version = release = pertinent.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "catalogue",
    "docstrings",
    "mathml",
    "measurements",
]
html_math_renderer = "mathml"
exclude_patterns = ["_ext", "examples", "gallery"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False

# -- Markdown ----------------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "myst.header", "config.cache"]

# -- Reference ---------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_default_options = {
    "members": True,
    "inherited-members": "list,Sequence,ABC",
}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
python_use_unqualified_type_names = True
add_module_names = False

# -- Gallery -----------------------------------------------------------------------------------------
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": True,
    "abort_on_example_error": True,
    "reference_url": {"pertinent": None},
    "backreferences_dir": None,
    "min_reported_time": 10_000,
    "write_computation_times": False,
}

# -- Pages -------------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"pertinent {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b3540a", "color-brand-content": "#b3540a"},
    "dark_css_variables": {"color-brand-primary": "#f0a35e", "color-brand-content": "#f0a35e"},
    "navigation_with_keys": True,
}
