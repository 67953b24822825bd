import logging

import adead

logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
logging.getLogger("adead").setLevel(logging.INFO)
ctx = adead.Context("cpu")  # INFO adead.devices: opened cpu: …
