//! Curves as SVG: small panels in rows, medians as lines, intervals as bars. Text stays text, so that neither drawing
//! nor this machine needs a font.

use crate::spread::Spread;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;

/// Pixels of one panel.
const PANEL: (u32, u32) = (460, 320);
/// Pixels of the title above all.
const TITLE_HEIGHT: i32 = 36;
/// Pixels of the row below it that says which colour is whose.
const LEGEND_HEIGHT: i32 = 20;
/// Pixels of a letter there, about, and of the line before a name.
const LETTER: i32 = 7;
const KEY: i32 = 20;
/// How much higher than the highest value a panel is.
const HEADROOM: f64 = 1.05;
/// A curve of at most so many points shows each of them.
const MARKED_MAX: usize = 30;
/// Colours that people who see fewer of them tell apart, too (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(110, 110, 110),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above all panels.
    pub title: String,
    /// Panels beside one another; at least one.
    pub columns: usize,
    /// Row by row.
    pub panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What the horizontal axis counts.
    pub x_label: String,
    /// What stands at 0, 1 and so on instead of these numbers; nothing if numbers do.
    pub x_names: Vec<String>,
    /// Whether each tick of the horizontal axis is twice the one before. Then no point may be at 0.
    pub x_doubles: bool,
    /// What the vertical axis counts. It begins at 0.
    pub y_label: String,
    /// The curves.
    pub series: Vec<Series>,
    /// Where vertical lines are.
    pub marks: Vec<f64>,
    /// Where light ones are.
    pub light_marks: Vec<f64>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Which colour: the same number is the same colour in every panel.
    pub colour: usize,
    /// From left to right.
    pub points: Vec<(f64, Spread)>,
}

type Drawn = Result<(), Box<dyn Error + Send + Sync>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Axes<'a, X> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, RangedCoordf64>>;

/// Draws.
///
/// # Errors
/// If a text or a line cannot be drawn.
pub fn svg(chart: &Chart) -> Result<String, Box<dyn Error + Send + Sync>> {
    let columns = chart.columns.max(1);
    let rows = chart.panels.len().div_ceil(columns).max(1);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32 + (TITLE_HEIGHT + LEGEND_HEIGHT) as u32);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (title, rest) = root.split_vertically(TITLE_HEIGHT);
        title.titled(&chart.title, ("sans-serif", 20))?;
        let (keys, panels) = rest.split_vertically(LEGEND_HEIGHT);
        legend(chart, &keys)?;
        for (panel, area) in chart.panels.iter().zip(panels.split_evenly((rows, columns))) {
            draw(panel, &area)?;
        }
        root.present()?;
    }
    Ok(text)
}

const fn colour_of(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// Every name once, in the order of the colours.
fn legend(chart: &Chart, area: &Area<'_>) -> Drawn {
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    let names: BTreeMap<usize, &str> = series.map(|series| (series.colour, &*series.name)).collect();
    let mut x = KEY;
    for (colour, name) in names {
        area.draw(&PathElement::new([(x, 7), (x + KEY, 7)], colour_of(colour).stroke_width(2)))?;
        area.draw(&Text::new(name, (x + KEY + LETTER, 2), ("sans-serif", 13)))?;
        x += 2 * KEY + LETTER * (name.chars().count() as i32 + 1);
    }
    Ok(())
}

fn draw(panel: &Panel, area: &Area<'_>) -> Drawn {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let highest = points().map(|(_, spread)| spread.high).fold(0.0, f64::max);
    let height = if highest > 0.0 { highest * HEADROOM } else { 1.0 };
    let left = points().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let right = points().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
    let (left, right) = if left <= right { (left, right) } else { (1.0, 2.0) };
    let mut builder = ChartBuilder::on(area);
    builder.caption(&panel.title, ("sans-serif", 15)).margin(10).x_label_area_size(42).y_label_area_size(66);
    if panel.x_doubles {
        // Wide enough for a tick, even around a single point.
        let range = (left / 1.5..right * 1.5).log_scale().base(2.0);
        fill(panel, builder.build_cartesian_2d(range, 0.0..height)?, height)
    } else {
        // Names are wider than numbers.
        let margin = if panel.x_names.is_empty() { (right - left).max(0.1) * 0.05 } else { 0.5 };
        fill(panel, builder.build_cartesian_2d(left - margin..right + margin, 0.0..height)?, height)
    }
}

/// What is on the axes. Both kinds of horizontal axis are filled alike.
fn fill<X>(panel: &Panel, mut axes: Axes<'_, X>, height: f64) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let font = ("sans-serif", 12);
    axes.configure_mesh()
        .x_desc(&panel.x_label)
        .y_desc(&panel.y_label)
        .axis_desc_style(font)
        .label_style(font)
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_label_formatter(&|value| tick(&panel.x_names, *value))
        .y_label_formatter(&|value| short(*value))
        .draw()?;
    let grey = |level| RGBColor(level, level, level);
    let light = panel.light_marks.iter().map(|at| (*at, grey(200)));
    for (at, colour) in light.chain(panel.marks.iter().map(|at| (*at, grey(90)))) {
        axes.draw_series(LineSeries::new([(at, 0.0), (at, height)], colour))?;
    }
    for Series { colour, points, .. } in &panel.series {
        let colour = colour_of(*colour);
        let line = LineSeries::new(points.iter().map(|(x, spread)| (*x, spread.median)), colour.stroke_width(2));
        axes.draw_series(line)?;
        let marked = points.iter().filter(|_| points.len() <= MARKED_MAX);
        axes.draw_series(marked.map(|(x, Spread { low, median, high })| {
            ErrorBar::new_vertical(*x, *low, *median, *high, colour.filled(), 5)
        }))?;
    }
    Ok(())
}

/// Ticks between whole numbers have no text: there is no half client.
fn tick(names: &[String], value: f64) -> String {
    match (value - value.round()).abs() < 1e-6 {
        true if names.is_empty() => format!("{value:.0}"),
        true => names.get(value.round() as usize).cloned().unwrap_or_default(),
        false => String::new(),
    }
}

/// Thousands as `k`.
fn short(value: f64) -> String {
    if value >= 1000.0 { format!("{}k", value / 1000.0) } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(points: &[(f64, Spread)]) -> Panel {
        let series = |name: &str, colour| Series { name: name.to_owned(), colour, points: points.to_vec() };
        Panel {
            title: "8/8 bytes".into(),
            x_label: "clients".into(),
            x_names: Vec::new(),
            x_doubles: true,
            y_label: "op/s".into(),
            series: vec![series("first", 0), series("second", 1)],
            marks: vec![2.0],
            light_marks: Vec::new(),
        }
    }

    fn spread(low: f64, median: f64, high: f64) -> Spread {
        Spread { low, median, high }
    }

    #[test]
    fn everything_is_in_the_picture() {
        let points = [(1.0, spread(1.0, 2.0, 3.0)), (200.0, spread(4.0, 5.0, 6.0))];
        let chart = Chart { title: "Figure".into(), columns: 2, panels: vec![panel(&points), panel(&points)] };
        let text = svg(&chart).unwrap();
        assert!(text.starts_with("<svg") && text.contains("width=\"920\" height=\"376\""), "{text}");
        for word in ["Figure", "8/8 bytes", "clients", "op/s", "first", "second", "128"] {
            assert!(text.contains(word), "{word} is missing: {text}");
        }
        assert_eq!(text.matches("\nfirst\n").count(), 1, "one legend for all panels: {text}");
        // Lines that are 2 wide: two curves in each panel, and two keys.
        let wide = text.lines().filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"2\""));
        assert_eq!(wide.count(), 2 * 2 + 2, "{text}");
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        let empty = Chart { title: "Nothing".into(), columns: 0, panels: vec![panel(&[])] };
        assert!(svg(&empty).unwrap().contains("Nothing"));
        let nothing_answered = Chart { panels: vec![panel(&[(1.0, spread(0.0, 0.0, 0.0))])], ..empty };
        assert!(svg(&nothing_answered).is_ok());
    }

    #[test]
    fn a_single_point_has_a_mark_and_a_tick_near_it() {
        let one = Chart { title: "One".into(), columns: 1, panels: vec![panel(&[(200.0, spread(5.0, 5.0, 5.0))])] };
        let text = svg(&one).unwrap();
        assert!(text.contains("<circle") && text.contains("\n256\n"), "{text}");
        let many: Vec<_> = (1..=100).map(|x| (f64::from(x), spread(5.0, 5.0, 5.0))).collect();
        let many = Chart { panels: vec![panel(&many)], ..one };
        assert!(!svg(&many).unwrap().contains("<circle"), "a long curve is a line");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([short(0.5), short(900.0), short(12_500.0)], ["0.5", "900", "12.5k"]);
        assert_eq!([tick(&[], 2.0), tick(&[], 2.5)], ["2", ""]);
        let names = ["big".to_owned(), "inline".to_owned()];
        assert_eq!([0.0, 0.5, 1.0, 2.0].map(|value| tick(&names, value)), ["big", "", "inline", ""]);
    }
}
