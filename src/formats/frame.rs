//! Frames as SurfaceFlinger's FrameTimeline tells them, from Android 12 on: when each was expected, and when
//! it was there (Perfetto's protos/perfetto/trace/android/frame_timeline_event.proto).
//!
//! A reader pushes a frame as [`TrackEventKind::Frame`](super::TrackEventKind::Frame), at its begin, on a
//! track of [`TrackKind::Frames`](super::TrackKind::Frames).

use crate::clock::Timestamp;
use crate::ids::Pid;

/// A frame of one app's layer, or of the whole display, as it was expected or as it was.
///
/// The frame's begin is the time of the event that holds it, [`TrackEvent::ts`](super::TrackEvent::ts).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineFrame<'a> {
    /// Time of the end, in the file's clock; `None` where the file does not hold the end.
    pub end: Option<Timestamp>,
    /// The app of a surface frame; SurfaceFlinger for a display frame.
    pub pid: Pid,
    /// SurfaceFlinger's token of the display frame, which all surface frames in it name too.
    pub display_token: i64,
    /// The app's part in a display frame; `None` for the display frame itself.
    pub surface: Option<SurfaceFrame<'a>>,
    /// The outcome of the frame; `None` for an expected frame.
    pub actual: Option<ActualFrame>,
}

/// An app's work on one frame of one of its layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurfaceFrame<'a> {
    /// The token that the app has received for its work: the vsync id, which `Choreographer#doFrame` names
    /// too. Several layers of one app share it.
    pub token: i64,
    /// The layer's name; empty where the file does not hold it.
    pub layer: &'a [u8],
}

/// The outcome of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActualFrame {
    /// Why the frame was late.
    pub jank: JankTypes,
    /// When the frame was presented, compared with what was expected.
    pub present: PresentType,
    /// Whether the work on the frame ended before its deadline.
    pub on_time_finish: bool,
    /// Whether the GPU composed the frame, and not the display's own hardware.
    pub gpu_composition: bool,
    /// Whether what was expected still held.
    pub prediction: PredictionType,
}

impl TimelineFrame<'_> {
    /// The token by which Perfetto calls the frame: the app's for a surface frame, else SurfaceFlinger's.
    pub fn token(&self) -> i64 {
        self.surface.map_or(self.display_token, |surface| surface.token)
    }

    /// The layer's name; empty for a display frame, and where it is not known.
    pub fn layer(&self) -> &[u8] {
        self.surface.map_or(&[], |surface| surface.layer)
    }

    /// The facts about the frame beside its token, for people: layer, display frame, and outcome.
    pub fn details(&self) -> String {
        let mut parts = Vec::new();
        if !self.layer().is_empty() {
            parts.push(String::from_utf8_lossy(self.layer()).into_owned());
        }
        if self.surface.is_some() {
            parts.push(format!("display frame {}", self.display_token));
        }
        if let Some(actual) = &self.actual {
            parts.push(format!("jank: {}", actual.jank.text()));
            parts.push(actual.present.text().to_owned());
            let finish = if actual.on_time_finish { "finished on time" } else { "finished late" };
            parts.push(finish.to_owned());
            if actual.gpu_composition {
                parts.push("GPU composition".to_owned());
            }
            parts.push(actual.prediction.text().to_owned());
        }
        parts.join("; ")
    }

    /// Whether the frame was late: SurfaceFlinger names a reason, or presented it late or never.
    pub fn is_late(&self) -> bool {
        self.actual.is_some_and(|actual| {
            actual.jank.is_jank() || matches!(actual.present, PresentType::Late | PresentType::Dropped)
        })
    }
}

/// Why a frame was late: a set of the values of the enum `JankType`, as SurfaceFlinger wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JankTypes(pub u32);

impl JankTypes {
    /// The frame was not late.
    pub const NONE: u32 = 1;
    /// The app's work took too long.
    pub const APP_DEADLINE_MISSED: u32 = 64;

    /// Nothing moved on the screen, so that nobody saw the frame come late.
    pub const NON_ANIMATING: u32 = 2048;
    /// The display was off.
    pub const DISPLAY_NOT_ON: u32 = 8192;

    /// The reasons that SurfaceFlinger names, with the names of Perfetto's tools, in their order. Android 14
    /// has added `App Resynced Jitter`, Android 17 the last three.
    pub const REASONS: [(u32, &'static str); 15] = [
        (2, "SurfaceFlinger Scheduling"),
        (4, "Prediction Error"),
        (8, "Display HAL"),
        (16, "SurfaceFlinger CPU Deadline Missed"),
        (32, "SurfaceFlinger GPU Deadline Missed"),
        (JankTypes::APP_DEADLINE_MISSED, "App Deadline Missed"),
        (4096, "App Resynced Jitter"),
        (128, "Buffer Stuffing"),
        (256, "Unknown Jank"),
        (512, "SurfaceFlinger Stuffing"),
        (1024, "Dropped Frame"),
        (JankTypes::NON_ANIMATING, "Non Animating"),
        (JankTypes::DISPLAY_NOT_ON, "Display not ON"),
        (16384, "Display Mode Change In Progress"),
        (32768, "Display Power Mode Change In Progress"),
    ];

    /// Whether a reason for a late frame is named. A frame that nobody could see is none.
    pub fn is_jank(self) -> bool {
        self.0 & !(JankTypes::NONE | JankTypes::NON_ANIMATING | JankTypes::DISPLAY_NOT_ON) != 0
    }

    /// The reasons as Perfetto's tools write them: `App Deadline Missed, Buffer Stuffing`; `None` without a
    /// reason, `Unspecified` where SurfaceFlinger has not said. Values that this version does not know become
    /// one number at the end.
    pub fn text(self) -> String {
        match self.0 {
            0 => return "Unspecified".to_owned(),
            JankTypes::NONE => return "None".to_owned(),
            _ => {}
        }
        let named = JankTypes::REASONS.iter().filter(|(bit, _)| self.0 & bit != 0);
        let mut texts: Vec<String> = named.map(|(_, name)| (*name).to_owned()).collect();
        let known = JankTypes::REASONS.iter().fold(JankTypes::NONE, |all, (bit, _)| all | bit);
        if self.0 & !known != 0 {
            texts.push(format!("{:#x}", self.0 & !known));
        }
        texts.join(", ")
    }
}

/// Makes an enum of a protobuf enum: its values, their numbers in the file and their names in Perfetto's
/// tools. The first value stands for every number that has no name here.
macro_rules! proto_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $number:literal, $text:literal;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $($(#[$doc])* $value,)*
        }

        impl $name {
            const ALL: &[($name, u64, &'static str)] = &[$(($name::$value, $number, $text),)*];

            /// The value with this number in the file. Numbers without a name are not specified.
            pub fn of_number(number: u64) -> $name {
                $name::ALL.iter().find(|(_, known, _)| *known == number).map_or($name::default(), |(v, ..)| *v)
            }

            /// The value's number in the file.
            pub fn number(self) -> u64 {
                $name::ALL.iter().find(|(value, ..)| *value == self).map_or(0, |(_, number, _)| *number)
            }

            /// The value's name in Perfetto's tools.
            pub fn text(self) -> &'static str {
                $name::ALL.iter().find(|(value, ..)| *value == self).map_or("", |(.., text)| text)
            }
        }
    };
}

proto_enum! {
    /// When a frame was presented, compared with what was expected.
    PresentType {
        /// SurfaceFlinger has not said.
        #[default]
        Unspecified = 0, "Unspecified Present";
        /// At the expected time.
        OnTime = 1, "On-time Present";
        /// Later than expected.
        Late = 2, "Late Present";
        /// Earlier than expected.
        Early = 3, "Early Present";
        /// Not at all.
        Dropped = 4, "Dropped Frame";
        /// SurfaceFlinger does not know.
        Unknown = 5, "Unknown Present";
    }
}

proto_enum! {
    /// Whether what was expected of a frame still held when it was there.
    PredictionType {
        /// SurfaceFlinger has not said.
        #[default]
        Unspecified = 0, "Unspecified Prediction";
        /// The frame met its prediction.
        Valid = 1, "Valid Prediction";
        /// The prediction was too old to be used.
        Expired = 2, "Expired Prediction";
        /// Nothing was expected of the frame, or it is not known what.
        Unknown = 3, "Unknown Prediction";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_named_as_perfetto_names_them() {
        for (mask, text) in [
            (0, "Unspecified"),
            (1, "None"),
            (66, "SurfaceFlinger Scheduling, App Deadline Missed"),
            (128 | 1024, "Buffer Stuffing, Dropped Frame"),
            (64 | 1 << 20, "App Deadline Missed, 0x100000"),
            (1 << 31, "0x80000000"),
        ] {
            assert_eq!(JankTypes(mask).text(), text);
            assert_eq!(JankTypes(mask).is_jank(), mask > 1);
        }
        let unseen = JankTypes(JankTypes::NON_ANIMATING | JankTypes::DISPLAY_NOT_ON);
        assert_eq!((unseen.is_jank(), unseen.text().as_str()), (false, "Non Animating, Display not ON"));
    }

    #[test]
    fn the_numbers_of_a_type_come_back_and_others_are_not_specified() {
        for number in 0..=5 {
            assert_eq!(PresentType::of_number(number).number(), number);
        }
        for number in 0..=3 {
            assert_eq!(PredictionType::of_number(number).number(), number);
        }
        assert_eq!(PresentType::of_number(6), PresentType::Unspecified);
        assert_eq!(PredictionType::of_number(u64::MAX), PredictionType::Unspecified);
    }

    #[test]
    fn a_frame_is_late_if_there_is_a_reason_or_it_was_presented_late() {
        let actual = |jank, present| ActualFrame {
            jank: JankTypes(jank),
            present,
            on_time_finish: true,
            gpu_composition: false,
            prediction: PredictionType::Valid,
        };
        let frame = |actual| TimelineFrame {
            end: Some(Timestamp(9)),
            pid: Pid(7),
            display_token: 3,
            surface: None,
            actual,
        };
        assert!(!frame(None).is_late());
        assert!(!frame(Some(actual(1, PresentType::OnTime))).is_late());
        assert!(!frame(Some(actual(0, PresentType::Early))).is_late());
        assert!(frame(Some(actual(128, PresentType::OnTime))).is_late());
        assert!(frame(Some(actual(0, PresentType::Dropped))).is_late());
        let surface = SurfaceFrame { token: 20, layer: b"TX - a#1" };
        assert_eq!(TimelineFrame { surface: Some(surface), ..frame(None) }.token(), 20);
        assert_eq!(frame(None).token(), 3);
    }
}
