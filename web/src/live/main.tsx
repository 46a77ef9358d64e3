// Begins the page of a recording that runs. In a worker: decodes what is kept for the page.

import { serve } from "../data/decode_workers";
import { startLive } from "./live_page";

const start = () => startLive(document.getElementById("app") ?? document.body);

// The page's workers run this script too.
if (typeof document === "undefined") serve();
else if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
else start();
