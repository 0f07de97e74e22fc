"""The weather of any place by open-meteo.com, which needs no key and no account."""

from caal_node.toolsets.weather.toolset import Weather as Weather
