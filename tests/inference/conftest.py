"""An untrained recognizer: enough to test everything but accuracy."""

import pytest
import torch

from sonorant.data.features import FbankConfig
from sonorant.decoding.wfst import uniform_unigram
from sonorant.inference import Recognizer
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.text import Lexicon, SymbolTable


@pytest.fixture
def recognizer() -> Recognizer:
    torch.manual_seed(0)
    symbols, lexicon = SymbolTable(["SIL", "N", "Y"]), Lexicon({"YES": [["Y"]], "NO": [["N"]]})
    features = FbankConfig(sample_rate=8000, n_mels=23)
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=8), features.n_mels, len(symbols))
    return Recognizer(model, features, symbols, lexicon, uniform_unigram(lexicon), silence="SIL", recipe="yesno")
