"""[web]: the page in the browser and who may use it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_serializer, model_validator

from hilnode.config.tables.common import PlainText, Table, WebAddress, is_local, refuse
from hilnode.core.problems import TOKEN


class WebTable(Table):
    """The page in the browser."""

    enabled: bool = Field(default=True, description="Serve it, if the bridge is on.")
    address: WebAddress = Field(default="http://127.0.0.1:8080", description="What to open in the browser.")
    token: Annotated[str, Field(pattern=TOKEN)] | None = Field(
        default=None,
        description="Secret that a page needs, as #token=... at the end of its address. Needed beyond loopback.",
        examples=["a-long-word-that-nobody-guesses"],
    )
    role: Literal["watch", "operate", "admin"] = Field(default="operate", description="What a page may do at most.")
    key: PlainText | None = Field(
        default=None,
        description="Key file of this server (hilnode keys), where bridge.keys asks for one.",
        examples=["keys/web.key.toml"],
    )

    @field_serializer("token", when_used="json")
    def _hide(self, token: str | None) -> str | None:
        """A config is written into every run's files: the secret is not."""
        return token and "kept-secret-elsewhere"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.token and not is_local(self.address.replace("http://", "tcp://")):
            raise refuse("lets other PCs in, which needs web.token: a secret of 16 or more characters", "address")
        return self
