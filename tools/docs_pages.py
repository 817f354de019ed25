"""Pages of the documentation that are made from declarations or measurements, for MkDocs."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from holdfast.reference import settings_page, tables_page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the settings of every protocol, every table, and the coverage of the intervals."""
    files.append(File.generated(config, "settings.md", content=settings_page()))
    files.append(File.generated(config, "every-table.md", content=tables_page()))
    coverage = Path(config.config_file_path).parent / "benchmarks" / "coverage.md"
    files.append(File.generated(config, "coverage.md", content=coverage.read_text("utf-8")))
    return files
