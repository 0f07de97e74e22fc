"""The toolset `documents`: answers from the notes and documents in the owner's folders."""

from caal_node.toolsets.documents.toolset import Documents, DocumentsOptions

__all__ = ["Documents", "DocumentsOptions"]
