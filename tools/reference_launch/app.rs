//! The part of the app: binding, its first activity, its frames.
//!
//! The story that a trace of it tells: half of the launch is the disk and the settings, which
//! `MainActivity` reads as JSON on the main thread; then the first row waits for a lock that a worker holds
//! while it decodes an image. Later one frame decodes an image on the main thread and is late.

use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use super::markers::Markers;
use super::method_tracer::{JavaThread, MethodTracer};
use super::stand_in::{become_package, set_comm};
use super::{Args, Release, now_ns, work};

/// Time from one frame to the next, at 60 Hz.
const FRAME_TIME: Duration = Duration::from_nanos(16_666_667);
/// The number of the first frame, as SurfaceFlinger counts them since it was started.
const FIRST_FRAME: u64 = 4711;
/// The frame before which the app says that it is fully drawn.
const FULLY_DRAWN_AT: u64 = 24;
/// The frame that decodes an image on the main thread.
const LATE_FRAME: u64 = 40;
/// Size of a read of the app's code, bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// Views of the layout that the activity inflates.
const VIEWS: u64 = 48;
/// Entries of the settings that the activity parses.
const SETTINGS: u64 = 400;
/// Rows of the feed on the first screen.
const ROWS: u64 = 8;
/// Images that the worker decodes.
const IMAGES: u64 = 12;

/// The images that are decoded, and the thread that holds the lock.
struct ImageCache {
    decoded: Mutex<u64>,
    owner: Mutex<(String, i32)>,
}

/// A frame for the RenderThread, which answers when the main thread may go on.
struct RenderFrame {
    name: String,
    work_us: u64,
    synced: Sender<()>,
}

/// State that every thread of the app has.
#[derive(Clone)]
struct App {
    markers: Markers,
    images: Arc<ImageCache>,
    release: Release,
}

/// Plays the app, from its process's first moment to its last frame.
pub fn play(args: &Args) -> io::Result<()> {
    become_package(&args.package);
    set_comm(&args.package);
    let markers = Markers::open(args.tracefs.as_deref());
    let tracer = MethodTracer::start(!args.no_methods);
    let images = ImageCache { decoded: Mutex::new(0), owner: Mutex::new((String::new(), 0)) };
    let app = App { markers, images: Arc::new(images), release: args.release };
    let mut main = tracer.thread("main");
    {
        let _slice = markers.slice("ActivityThreadMain");
        work(2000);
        attach()?;
    }
    let apk = args.output.with_extension("apk");
    let (worker, images_wanted) = app.bind(&mut main, &apk, &tracer)?;
    app.start_activity(&mut main, &apk, args.more_calls)?;
    app.resume(&mut main, &images_wanted);
    let (render, render_thread) = app.start_render_thread();
    let fully_drawn = app.draw_frames(&mut main, args, &render);
    drop((render, images_wanted));
    let frames = render_thread.join().expect("no thread panics");
    worker.join().expect("no thread panics");
    drop(main);
    let (trace, calls, methods) = tracer.finish();
    if !args.no_methods {
        fs::write(&args.output, trace)?;
    }
    let first = frames.first().copied();
    println!(
        "{}",
        json!({
            "pid": std::process::id(), "frames": frames.len(), "first_frame_end_ns": first,
            "fully_drawn_end_ns": fully_drawn.and_then(|frame| frames.get(frame as usize)).copied(),
            "late_frame": (args.frames > LATE_FRAME).then_some(FIRST_FRAME + LATE_FRAME),
            "calls": calls, "methods": methods,
        })
    );
    Ok(())
}

/// Tells system_server that the process is there, and waits until it is told what to do.
fn attach() -> io::Result<()> {
    println!("attach");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim_end() {
        "bind" => Ok(()),
        other => Err(io::Error::other(format!("system_server says {other:?}"))),
    }
}

/// Reads a part of the app's code from the disk.
fn read_code(thread: &mut JavaThread, apk: &Path, from: usize, to: usize) -> io::Result<()> {
    let file = File::open(apk)?;
    let mut block = vec![0; BLOCK_BYTES];
    for at in (from..to).step_by(BLOCK_BYTES) {
        thread.call("libcore.io.Linux.pread", |_| file.read_exact_at(&mut block, at as u64))?;
        work(40);
    }
    Ok(())
}

impl App {
    /// `bindApplication`: the app's code is opened, its Application object is made, a worker is started.
    fn bind(
        &self,
        main: &mut JavaThread,
        apk: &Path,
        tracer: &MethodTracer,
    ) -> io::Result<(JoinHandle<()>, SyncSender<u64>)> {
        let _slice = self.markers.slice("bindApplication");
        main.call("android.app.ActivityThread.handleBindApplication", |main| {
            main.call("dalvik.system.DexPathList.makeDexElements", |main| {
                let _slice = self.markers.slice(&format!("OpenDexFilesFromOat({})", apk.display()));
                read_code(main, apk, 0, 2 << 20)
            })?;
            {
                let _slice = self.markers.slice("VerifyClass com.example.feed.FeedApp");
                work(3000);
            }
            let started = main.call("com.example.feed.FeedApp.onCreate", |main| {
                main.call("com.example.feed.di.Graph.build", |main| {
                    for n in 0..60 {
                        main.call("com.example.feed.di.Provider.get", |main| {
                            main.leaf("java.util.HashMap.get", 4);
                            main.leaf("java.lang.reflect.Constructor.newInstance", 30 + n % 7 * 10);
                            main.leaf("java.util.HashMap.put", 6);
                        });
                    }
                });
                main.call("com.example.feed.net.HttpClient.<init>", |main| {
                    main.leaf("okhttp3.OkHttpClient$Builder.build", 700);
                    main.leaf("okhttp3.ConnectionPool.<init>", 250);
                    main.leaf("javax.net.ssl.SSLContext.init", 2500);
                });
                main.call("com.example.feed.Analytics.<init>", |main| {
                    main.leaf("android.content.SharedPreferences.getString", 400);
                    main.leaf("java.util.UUID.randomUUID", 60);
                });
                main.call("com.example.feed.image.ImageLoader.<init>", |_| self.start_worker(tracer))
            });
            Ok(started)
        })
    }

    /// The thread that decodes images. It holds the cache's lock for as long as it decodes one.
    fn start_worker(&self, tracer: &MethodTracer) -> (JoinHandle<()>, SyncSender<u64>) {
        let (wanted, images) = sync_channel::<u64>(IMAGES as usize);
        let app = self.clone();
        let tracer = tracer.clone();
        let worker = thread::spawn(move || {
            set_comm("pool-2-thread-1");
            let mut worker = tracer.thread("pool-2-thread-1");
            while let Ok(image) =
                worker.call("java.util.concurrent.LinkedBlockingQueue.take", |_| images.recv())
            {
                worker.call("com.example.feed.image.ImageLoader.load", |worker| {
                    app.decode_image(worker, image);
                });
            }
        });
        (worker, wanted)
    }

    fn decode_image(&self, worker: &mut JavaThread, image: u64) {
        *self.images.owner.lock().expect("no thread panics") =
            ("pool-2-thread-1".to_owned(), nix::unistd::gettid().as_raw());
        let mut decoded = self.images.decoded.lock().expect("no thread panics");
        let _slice = self.markers.slice("decodeBitmap");
        worker.call("com.example.feed.image.PngDecoder.decode", |worker| {
            // The first image is the large one on top of the feed.
            let lines = if image == 0 { 160 } else { 40 };
            for _ in 0..lines {
                worker.call("com.example.feed.image.PngDecoder.readLine", |worker| {
                    worker.leaf("java.util.zip.Inflater.inflate", 90);
                    worker.leaf("com.example.feed.image.PngDecoder.unfilter", 60);
                });
            }
        });
        *decoded += 1;
        drop(decoded);
        // A monitor of ART goes to whoever waits for it; this one goes to whoever comes first.
        worker.call("com.example.feed.image.DiskCache.write", |_| thread::sleep(Duration::from_millis(1)));
    }

    /// The first activity: its views, and its settings, which it reads on the main thread.
    fn start_activity(&self, main: &mut JavaThread, apk: &Path, more_calls: u64) -> io::Result<()> {
        let _slice = self.markers.slice("activityStart");
        main.call("android.app.ActivityThread.performLaunchActivity", |main| {
            let _slice = self.markers.slice("performCreate:com.example.feed.MainActivity");
            main.call("com.example.feed.MainActivity.onCreate", |main| {
                main.call("android.app.Activity.setContentView", |main| self.inflate(main));
                main.call("com.example.feed.SettingsStore.load", |main| {
                    main.call("com.example.feed.SettingsStore.readFile", |main| {
                        read_code(main, apk, 2 << 20, 3 << 20)
                    })?;
                    main.call("com.google.gson.Gson.fromJson", parse_settings);
                    for _ in 0..more_calls {
                        main.leaf("java.util.ArrayList.get", 0);
                    }
                    Ok(())
                })
            })
        })
    }

    fn inflate(&self, main: &mut JavaThread) {
        let _slice = self.markers.slice("inflate");
        main.call("android.view.LayoutInflater.inflate", |main| {
            for view in 0..VIEWS {
                main.call("android.view.LayoutInflater.createViewFromTag", |main| {
                    let kind = match view % 4 {
                        0 => "android.widget.ImageView.<init>",
                        1 => "androidx.recyclerview.widget.RecyclerView.<init>",
                        _ => "android.widget.TextView.<init>",
                    };
                    main.call(kind, |main| {
                        for _ in 0..3 + view % 5 {
                            main.leaf("android.content.res.TypedArray.getValue", 8);
                        }
                        main.leaf("android.view.View.setFlags", 20);
                    });
                });
            }
        });
        let _slice = self.markers.slice("ResourcesManager#getResources");
        work(800);
    }

    /// `activityResume`: the images of the first screen are asked for.
    fn resume(&self, main: &mut JavaThread, images_wanted: &SyncSender<u64>) {
        let _slice = self.markers.slice("activityResume");
        main.call("android.app.ActivityThread.handleResumeActivity", |main| {
            main.call("com.example.feed.MainActivity.onResume", |main| {
                for image in 0..IMAGES {
                    // The queue has room for all of them.
                    let asked = main
                        .call("com.example.feed.image.ImageLoader.request", |_| images_wanted.send(image));
                    asked.expect("the worker waits for images");
                }
                main.leaf("com.example.feed.Analytics.track", 900);
            });
        });
    }

    /// The thread that draws the frames. Its result is the moment at which each frame's drawing ended, ns.
    fn start_render_thread(&self) -> (SyncSender<RenderFrame>, JoinHandle<Vec<u64>>) {
        let (frames, wanted): (_, Receiver<RenderFrame>) = sync_channel(1);
        let markers = self.markers;
        let thread = thread::spawn(move || {
            set_comm("RenderThread");
            let mut ends = Vec::new();
            for frame in wanted {
                {
                    let _slice = markers.slice(&frame.name);
                    {
                        let _slice = markers.slice("syncFrameState");
                        work(300);
                    }
                    // The main thread is gone where the app ends.
                    let _ = frame.synced.send(());
                    {
                        let _slice = markers.slice("flush commands");
                        work(frame.work_us);
                    }
                    let _slice = markers.slice("eglSwapBuffersWithDamageKHR");
                    work(200);
                }
                ends.push(now_ns());
                if ends.len() == 1 {
                    println!("drawn");
                    let _ = io::stdout().flush();
                }
            }
            ends
        });
        (frames, thread)
    }

    /// Draws the frames, one at each time for one. Returns the number of the first frame after the app has
    /// said that it is fully drawn.
    fn draw_frames(
        &self,
        main: &mut JavaThread,
        args: &Args,
        render: &SyncSender<RenderFrame>,
    ) -> Option<u64> {
        let begun = Instant::now();
        let mut fully_drawn = None;
        for frame in 0..args.frames {
            if frame == FULLY_DRAWN_AT {
                let component = format!("ComponentInfo{{{0}/{0}.MainActivity}}", args.package);
                let _slice = self.markers.slice(&format!("reportFullyDrawn() for {component}"));
                main.leaf("android.app.Activity.reportFullyDrawn", 150);
                fully_drawn = Some(frame);
            }
            thread::sleep((begun + FRAME_TIME * frame as u32).saturating_duration_since(Instant::now()));
            let number = FIRST_FRAME + frame;
            let (do_frame, draw_frame) = match self.release {
                Release::Android9 => ("Choreographer#doFrame".to_owned(), "DrawFrame".to_owned()),
                Release::Android10 => ("Choreographer#doFrame".to_owned(), "DrawFrame".to_owned()),
                Release::Android12 => {
                    (format!("Choreographer#doFrame {number}"), format!("DrawFrames {number}"))
                }
            };
            let (synced, is_synced) = channel();
            let _slice = self.markers.slice(&do_frame);
            main.call("android.view.Choreographer.doFrame", |main| {
                main.leaf("android.view.Choreographer$CallbackQueue.extractDueCallbacksLocked", 6);
                main.leaf("android.view.animation.AnimationUtils.currentAnimationTimeMillis", 4);
                let _slice = self.markers.slice("traversal");
                main.call("android.view.ViewRootImpl.performTraversals", |main| self.traverse(main, frame));
                let work_us = if frame == 0 { 6000 } else { 1500 };
                let sent = render.send(RenderFrame { name: draw_frame, work_us, synced });
                sent.expect("the RenderThread waits for frames");
                let _ = main.call("android.graphics.HardwareRenderer.syncAndDrawFrame", |_| is_synced.recv());
            });
        }
        fully_drawn
    }

    fn traverse(&self, main: &mut JavaThread, frame: u64) {
        {
            let _slice = self.markers.slice("measure");
            main.call("android.view.View.measure", |main| {
                for _ in 0..if frame == 0 { VIEWS } else { 6 } {
                    main.leaf("android.widget.TextView.onMeasure", 25);
                }
            });
        }
        if frame == 0 {
            let _slice = self.markers.slice("layout");
            main.leaf("androidx.recyclerview.widget.LinearLayoutManager.onLayoutChildren", 300);
            for row in 0..ROWS {
                let _slice = self.markers.slice("RV OnBindView type=0x0");
                main.call("com.example.feed.FeedAdapter.onBindViewHolder", |main| {
                    main.leaf("android.widget.TextView.setText", 120);
                    main.leaf("com.example.feed.Dates.relative", 45);
                    main.leaf("android.text.format.DateUtils.getRelativeTimeSpanString", 80);
                    if row == 0 {
                        main.call("com.example.feed.image.ImageCache.get", |_| self.wait_for_cache());
                    }
                });
            }
        }
        if frame == LATE_FRAME {
            main.call("com.example.feed.FeedAdapter.onBindViewHolder", |main| {
                main.call("com.example.feed.image.PngDecoder.decode", |main| {
                    for _ in 0..150 {
                        main.call("com.example.feed.image.PngDecoder.readLine", |main| {
                            main.leaf("java.util.zip.Inflater.inflate", 150);
                            main.leaf("com.example.feed.image.PngDecoder.unfilter", 90);
                        });
                    }
                });
            });
        }
        let _slice = self.markers.slice("draw");
        main.call("android.view.View.draw", |main| {
            for _ in 0..4 {
                main.leaf("android.view.RecordingCanvas.drawRenderNode", 15);
            }
        });
    }

    /// Takes the lock of the images, with ART's marker where another thread holds it.
    fn wait_for_cache(&self) {
        let held = matches!(self.images.decoded.try_lock(), Err(TryLockError::WouldBlock));
        if !held {
            return;
        }
        let (owner, tid) = self.images.owner.lock().expect("no thread panics").clone();
        let _slice = self.markers.slice(&format!(
            "monitor contention with owner {owner} ({tid}) at \
             void com.example.feed.image.ImageLoader.load(int)(ImageLoader.java:57) waiters=0 \
             blocking from android.graphics.Bitmap com.example.feed.image.ImageCache.get(int)(ImageCache.java:31)"
        ));
        drop(self.images.decoded.lock());
        work(50);
    }
}

/// Parses the settings, entry by entry.
fn parse_settings(main: &mut JavaThread) {
    for entry in 0..SETTINGS {
        main.call("com.google.gson.internal.bind.ReflectiveTypeAdapterFactory$Adapter.read", |main| {
            for _ in 0..4 {
                main.leaf("com.google.gson.stream.JsonReader.nextName", 12);
                main.call("com.google.gson.internal.bind.TypeAdapters$16.read", |main| {
                    main.leaf("com.google.gson.stream.JsonReader.nextString", 14 + entry % 3 * 4);
                });
            }
            main.leaf("java.lang.reflect.Field.set", 10);
        });
    }
}
