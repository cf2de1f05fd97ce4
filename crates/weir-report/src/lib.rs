//! Records and findings to terminal, Markdown and HTML.
