"""How the application looks: colours, fonts, icons, style sheet; a source's colour is its own."""
