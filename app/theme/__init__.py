"""How the application looks: colours, fonts, icons and the style sheet made of them."""
