from hilnode.config import *
from hilnode.config import NEVER, CommandMap, FaultMap, InputMap, StimulusMap, SignalMap, resolve
