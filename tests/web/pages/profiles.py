"""Browser profiles, cleared and used again: a new one for every test would cost more than most of the tests."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 360, "height": 740}}
FORGET = "() => { localStorage.clear(); sessionStorage.clear(); }"


@dataclass
class Profile:
    """A browser context with cookies and storage of its own, and its first tab."""

    device: str
    context: Any
    page: Any
    free: bool = False

    def clear(self, quiet: str) -> None:
        """Make it as good as new: no other tabs, cookies, storage, routes, or settings of the last test."""
        for page in self.context.pages:
            if page is not self.page:
                page.close()
        self.context.set_offline(False)
        self.page.unroute_all(behavior="ignoreErrors")
        self.context.set_extra_http_headers({})
        self.page.goto(quiet)
        self.page.evaluate(FORGET)
        self.context.clear_cookies()
        if self.page.viewport_size != SIZES[self.device]:
            self.page.set_viewport_size(SIZES[self.device])
        self.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        self.free = True


class Profiles:
    """The profiles of one browser."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._all: list[Profile] = []

    def take(self, device: str) -> Any:
        """Return the tab of a profile that nobody uses."""
        for profile in self._all:
            if profile.free and profile.device == device:
                profile.free = False
                return profile.page
        phone = device == "phone"
        context = self._browser.new_context(
            viewport=SIZES[device], is_mobile=phone, has_touch=phone, color_scheme="light"
        )
        profile = Profile(device, context, context.new_page())
        self._all.append(profile)
        return profile.page

    def take_back(self, quiet: str) -> None:
        """Clear all that are in use; those that cannot be cleared, because no tab or no server is left, are closed."""
        from playwright.sync_api import Error

        for profile in [profile for profile in self._all if not profile.free]:
            with contextlib.suppress(Error):
                profile.clear(quiet)
            if not profile.free:
                self.drop(profile.context)

    def drop(self, context: Any) -> None:
        """Close a profile for good."""
        self._all = [profile for profile in self._all if profile.context is not context]
        context.close()
