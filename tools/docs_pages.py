"""Pages of the documentation that are made from declarations, for MkDocs."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from holdfast.reference import settings_page, tables_page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the settings of every protocol, and every table."""
    files.append(File.generated(config, "settings.md", content=settings_page()))
    files.append(File.generated(config, "every-table.md", content=tables_page()))
    return files
