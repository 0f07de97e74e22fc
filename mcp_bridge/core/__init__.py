"""Types that every other room uses: settings, tools, events, errors. It imports no other room."""
