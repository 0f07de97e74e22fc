"""Searches the web by a service of the owner's choice, and reads pages that a search has found."""

from caal_node.toolsets.web_search.toolset import WebSearch as WebSearch
