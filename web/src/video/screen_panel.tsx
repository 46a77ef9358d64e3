// The panel with the picture that the screen showed at the pointer, or where the selection begins.

import { useEffect, useRef, useState } from "preact/hooks";

import type { ScreenVideo } from "../data/screen_video";
import type { Store } from "../store";
import { formatMoment } from "../timeline/time";
import { mounted } from "../ui/mounted";
import { visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { momentOf, stepFrame } from "./moment";

export function ScreenPanel({ store }: { store: Store }) {
  const state = useStore(store, "trace", "pointer", "selection", "range", "view");
  const { videos } = state.trace;
  const [chosen, setChosen] = useState(0);
  const video = videos.at(chosen) ?? videos.at(0);
  if (!video) return <p class="screen-message">No video of the screen was recorded with this trace.</p>;
  const frame = video.frameAt(momentOf(state));
  return (
    <div class="screen">
      <div class="toolbar">
        {videos.length > 1 && (
          <label class="field">
            <span>Video</span>
            <select value={String(chosen)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
              {videos.map(({ name }, n) => (
                <option value={String(n)}>{visibleName(name)}</option>
              ))}
            </select>
          </label>
        )}
        <button type="button" title="Previous frame (,)" onClick={() => stepFrame(store, video, -1)}>
          Previous frame
        </button>
        <button type="button" title="Next frame (.)" onClick={() => stepFrame(store, video, 1)}>
          Next frame
        </button>
        <span class="screen-frame">{frameText(video, frame)}</span>
      </div>
      {video.hasPictures ? (
        <Picture key={chosen} video={video} frame={frame} />
      ) : (
        <p class="screen-message">
          {visibleName(video.name)} is no file that a browser can open: write the page with --embed-video.
        </p>
      )}
    </div>
  );
}

/** Says which frame it is. */
function frameText(video: ScreenVideo, frame: number): string {
  const name = visibleName(video.name);
  if (frame < 0) return `${name}: begins at ${formatMoment(video.at[0])}`;
  const inVideo = `${(video.video[frame] / 1e9).toFixed(3)} s`;
  return `${name}: frame ${frame} of 0 to ${video.count - 1}, ${inVideo}, shown since ${formatMoment(video.at[frame])}`;
}

/** The picture of a frame. */
function Picture({ video, frame }: { video: ScreenVideo; frame: number }) {
  const element = useRef<HTMLVideoElement>(null);
  const [url, setUrl] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [ready, setReady] = useState(false);
  /** The frame of the picture that the player shows. */
  const [shown, setShown] = useState(-1);
  const wanted = useRef(frame);
  wanted.current = frame;
  const seeking = useRef(-1);
  useEffect(() => {
    video.source().then(setUrl, () => setProblem(`${visibleName(video.name)} is damaged on this page.`));
  }, [video]);
  const seek = () => {
    if (!ready || wanted.current < 0 || seeking.current >= 0 || wanted.current === shown) return;
    seeking.current = wanted.current;
    mounted(element).currentTime = video.playerTime(wanted.current);
  };
  useEffect(seek, [ready, frame, shown]);
  if (problem !== null) {
    return (
      <p class="screen-message" role="alert">
        {problem}
      </p>
    );
  }
  return (
    <div class="screen-picture">
      {url !== null && (
        <video
          ref={element}
          src={url}
          muted
          playsInline
          preload="auto"
          aria-label={frame < 0 ? "No picture yet" : `Picture of frame ${frame}`}
          data-frame={String(shown)}
          style={{ visibility: frame < 0 || shown < 0 ? "hidden" : "visible" }}
          onLoadedData={() => setReady(true)}
          onSeeked={() => {
            setShown(seeking.current);
            seeking.current = -1;
          }}
          onError={() => setProblem(cannotPlay(video))}
        />
      )}
    </div>
  );
}

/** Says why there is no picture. */
function cannotPlay(video: ScreenVideo): string {
  const name = visibleName(video.name);
  return video.isInside
    ? `This browser does not play ${name}: H.264, as most phones record it, needs Chromium, Chrome, Edge or Safari.`
    : `${name} does not play: it has to lie where it lay when the page was written (a page with --embed-video holds it),`
        + " and the browser has to play H.264.";
}
