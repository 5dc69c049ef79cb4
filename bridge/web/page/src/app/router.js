// Five addresses, one page: which view is shown follows from the path. The fragment, which may hold a token, stays.

import { el } from "./dom.js";

export class Router {
  constructor(pages) {
    this.pages = pages;
    this.page = pages[0];
    this.element = el("main", { id: "main" });
    this.links = pages.map((page) =>
      el("a", {
        href: page.path,
        onclick: (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          this.go(page.path);
        },
      }, page.title),
    );
    addEventListener("popstate", () => this.go(location.pathname, false));
  }

  go(path, remember = true) {
    const page = this.pages.find((candidate) => candidate.path === path) ?? this.pages[0];
    this.page.hide?.();
    if (remember) history.pushState(null, "", page.path + location.hash);
    this.page = page;
    this.element.replaceChildren(page.element);
    page.show?.();
    document.title = page.path === "/" ? "hilnode" : `${page.title} · hilnode`;
    this.links.forEach((link, k) => {
      if (this.pages[k] === page) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  }
}
