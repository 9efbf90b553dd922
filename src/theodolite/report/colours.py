"""The colours of everything drawn on white; a page's, light and dark, are in `page/templates/colours.css`."""

# Okabe and Ito's colours, told apart by every common colour vision; the fifth is the page's ink. Yellow is left out:
# it cannot be seen on white; violet stands for their reddish purple, which is too near to that of a user's own.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#8F76D9", "#000000", "#E69F00", "#56B4E9")
OWN = "#A3005C"  # of the user's own network, wherever it stands among others
PAGE, INK, SOFT, RULE, FAINT = "#ffffff", "#1b1f23", "#4f5861", "#d5d9dd", "#e9ebee"  # letters, lesser ones, lines …
