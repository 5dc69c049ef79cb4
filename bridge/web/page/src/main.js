// The page: one connection, one stage, five views of the same node.

import "./style/base.css";
import "./style/bar.css";
import "./style/viewer.css";
import "./style/signals.css";
import "./style/timing.css";
import "./style/operator.css";
import "./style/phone.css";
import { Bar } from "./app/bar.js";
import { Bus } from "./app/bus.js";
import { openHook } from "./app/hook.js";
import { Loop } from "./app/loop.js";
import { Router } from "./app/router.js";
import { Toasts } from "./app/toasts.js";
import { askForToken } from "./app/token.js";
import { HealthPage } from "./health/page.js";
import { Node } from "./link/node.js";
import { Socket } from "./link/socket.js";
import { OperatorPage } from "./operator/page.js";
import { Stage } from "./scene/stage.js";
import { ViewerPage } from "./scene/page.js";
import { SignalsPage } from "./signals/page.js";
import { TimingPage } from "./timing/page.js";

const hook = openHook();
const bus = new Bus();
const socket = new Socket(bus);
const node = new Node(bus, socket);
const toasts = new Toasts(bus);
const stage = new Stage(node);
const pages = [
  new ViewerPage(node, stage, toasts),
  new SignalsPage(node, toasts),
  new TimingPage(node),
  new HealthPage(node, toasts),
  new OperatorPage(node, stage, toasts),
];
const router = new Router(pages);
const loop = new Loop(node, stage, router);
const bar = new Bar(node, loop, router, toasts);

document.getElementById("app").append(bar.element, router.element, toasts.element);
askForToken(bus, socket);
hook.attach({ node, stage, loop });
router.go(location.pathname, false);
loop.start();
socket.connect();
