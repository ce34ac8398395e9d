//! How a comparison was measured, in words: the command that does it again, and all settings that no table shows.

use super::attacker::{LIAR, MEASURED};
use super::compare::{Arguments, Comparison, LOAD_THREADS, each_has_a_thread};
use super::share;
use super::words::name;
use bezant_perf::compare::Kind;
use bezant_perf::compare::attacks::Attacks;
use bezant_perf::compare::course::{Course, Event};
use bezant_perf::compare::fault::Fault;
use bezant_perf::compare::page::How;
use std::time::Duration;

impl Comparison<'_> {
    /// The command that repeats it, and the settings.
    pub(super) fn how(&self) -> How {
        let Arguments { load_threads, durability, channel, auth, .. } = self.arguments;
        let rounds = self.arguments.length.rounds;
        let which = match self.arguments.figure.is_empty() {
            true => custom_arguments(self.arguments),
            false => format!("--figure {}", self.experiment.name),
        };
        let mut command = format!("bezant bench compare {which} --rounds {rounds}");
        if self.arguments.protocols.is_some() {
            command += &format!(" --protocols \"{}\"", self.experiment.protocols.join(","));
        }
        let mut settings = format!("Rounds in turns: {rounds}");
        let (words, given) = self.how_long();
        command += &words;
        settings += &given;
        if *load_threads != LOAD_THREADS {
            command += &format!(" --load-threads {load_threads}");
        }
        if let Some(words) = self.bench.running.laboratory.words() {
            command += &format!(" {words}");
        }
        if let Some((words, given)) = self.bench.running.processors.words() {
            command += &format!(" {words}");
            settings += &format!("; {given}");
        }
        if let Some(attack) = self.bench.attacks.attack {
            command += &format!(" --attack {}", name(attack));
            settings += &format!("; under the attack {}", name(attack));
        }
        if let Some(lie) = self.bench.attacks.lie {
            command += &format!(" --lie {}", lie.name());
            settings += &format!("; replica {} lies: {}", LIAR, lie.name());
        }
        let (durability, channel, auth) = (name(*durability), name(*channel), name(*auth));
        for (flag, value, default) in
            [("durability", &durability, "memory"), ("channel", &channel, "plain"), ("auth", &auth, "mac")]
        {
            if value != default {
                command += &format!(" --{flag} {value}");
            }
        }
        let cores = share::cores();
        match &self.experiment.kind {
            Kind::Switching(_) | Kind::Groups(_) => {}
            _ if each_has_a_thread(self.contenders) => settings += "; each client on a thread of its own",
            _ if self.bench.has_attacker => {
                settings += &format!("; up to {MEASURED} clients with a key and a thread each");
            }
            _ => settings += &format!("; clients on {load_threads} threads"),
        }
        let durability = if self.names_durability() { "durability as named" } else { &durability };
        let auth = if self.contenders.iter().all(|it| it.auth.is_some()) { "authentication as named" } else { &auth };
        settings += &match &self.experiment.kind {
            Kind::Groups(_) => format!("; links with MACs; all on one machine with {cores} cores"),
            _ => format!("; {durability}, {channel}, {auth}; all on one machine with {cores} cores"),
        };
        settings += &self.load_average.map_or(".".to_owned(), |load| format!(", its load before: {load}."));
        How { command, settings, failed: self.failed }
    }

    /// How long everything takes, and what happens meanwhile: words of the command, and of the settings.
    fn how_long(&self) -> (String, String) {
        let scale = self.arguments.scale;
        let chosen = self.arguments.fault.map_or_else(String::new, |fault| format!(" --fault {}", fault.name()));
        let (mut command, mut settings) = (String::new(), String::new());
        match &self.experiment.kind {
            Kind::Sweep(_) => {
                let [seconds, warmup] = [self.bench.seconds, self.bench.warmup].map(|it| it.as_secs_f64());
                let [seconds, warmup] = [seconds, warmup].map(|it| (it * 10.0).round() / 10.0);
                command += &format!(" --seconds {seconds} --warmup {warmup}");
                settings += &format!("; {seconds} s each after {warmup} s of warm-up");
                if self.arguments.slices > 1 {
                    command += &format!(" --slices {}", self.arguments.slices);
                    settings += &format!(", in {} slices that take turns", self.arguments.slices);
                }
            }
            Kind::Course(course) => {
                command += &format!(" --scale {scale}");
                if let Event::Outage { fault, clients, .. } = course.event {
                    command += &format!(" --fault {}", fault.name());
                    settings += &format!("; f: {}; clients: {clients}", course.f);
                }
                settings += &format!("; {}", told(course));
            }
            Kind::Groups(_) => {}
            Kind::Switching(_) => {
                command += &chosen;
                settings += ", each switch in a cluster of its own";
            }
            Kind::Attacks(attacks) => {
                let seconds = self.bench.seconds.as_secs_f64();
                let clients = self.arguments.clients.as_ref().map(|clients| format!(" --clients {}", list(clients)));
                command += &format!(" --seconds {seconds} --scale {scale}{chosen}{}", clients.unwrap_or_default());
                let Attacks { f, attacks: all, clients, .. } = attacks;
                let clients = list(clients).replace(',', ", ");
                // What is told of it is not about its clients.
                let of = |attack: &Fault| told(&attacks.course(*attack, 0, self.bench.seconds));
                let runs: Vec<_> = all.iter().map(of).collect();
                settings += &format!("; {seconds} s before each attack and {seconds} s at its end are measured");
                settings += &format!("; f: {f}; clients: {clients}; {}", runs.join("; "));
            }
        }
        (command, settings)
    }

    /// Whether every point says what is on the disk.
    fn names_durability(&self) -> bool {
        match &self.experiment.kind {
            Kind::Sweep(sweep) => sweep.points.iter().all(|it| it.variant.is_some_and(|it| it.durability.is_some())),
            Kind::Course(_) | Kind::Switching(_) | Kind::Attacks(_) | Kind::Groups(_) => false,
        }
    }
}

fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// What describes an experiment that is none of the figures.
fn custom_arguments(arguments: &Arguments) -> String {
    let (clients, Arguments { f, request, reply, .. }) = (arguments.clients(), arguments);
    let replicas = arguments.replicas.map_or(String::new(), |n| format!(" --replicas {n}"));
    format!("--clients {} --f {}{replicas} --request {} --reply {reply}", list(clients), list(f), list(request))
}

/// What happens, in words.
fn told(course: &Course) -> String {
    match &course.event {
        Event::Outage { fault, before, down, after, .. } => {
            let [before, down, after] = [before, down, after].map(Duration::as_secs_f64);
            let what = fault.told();
            format!("{before} s before, {down} s in which {what}, {after} s after")
        }
        Event::Bursts(bursts) => {
            let bursts: Vec<_> = bursts.iter().map(|it| format!("{} × {}", it.clients, it.operations)).collect();
            let sizes: Vec<_> = course.request_bytes.iter().map(ToString::to_string).collect();
            format!("clients × requests of all: {}; bytes of a request: {}", bursts.join(", "), sizes.join(", "))
        }
    }
}
