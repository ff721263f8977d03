//! Measures what a decision of the rules costs.
//!
//! `cargo run --release -p sealway-proxy --example route -- make FOLDER` writes, for the `geosite.dat` and `geoip.dat` of a
//! folder, configurations with 10 and with 100 rules and questions for them into that folder. Then
//! `… --example route -- ask FOLDER/rules100.json FOLDER/questions.txt 20` asks them: answers, the number of the rule or -1,
//! go to standard output, and the time of every 64 decisions, in nanoseconds each, to standard error.
//! `scripts/measure-routes` does all of it, and the same with Xray.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use sealway_proxy::geo::{Form, GeoFile, Item, Kind};
use sealway_proxy::routes::{Routes, Traits};
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{File, Options, load};
use sealway_v2ray::{Address, Destination};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Decisions that are timed together: few, so that most rounds are not interrupted on a busy machine.
const ROUND: usize = 64;

/// Questions in the file.
const QUESTIONS: usize = 16_384;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["make", folder] => make(Path::new(folder)),
        ["ask", config, questions, rounds] => ask(Path::new(config), Path::new(questions), rounds.parse()?).await,
        _ => Err("usage: route make FOLDER | route ask CONFIG QUESTIONS ROUNDS".into()),
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// The codes of the lists of a file.
fn codes(path: &Path, kind: Kind) -> Outcome<Vec<String>> {
    let file = GeoFile::open(path, kind)?;
    Ok(file.lists().iter().map(|list| list.code.to_lowercase()).collect())
}

/// The domains of a list.
fn domains(path: &Path, code: &str) -> Outcome<Vec<String>> {
    let mut file = GeoFile::open(path, Kind::Names)?;
    let list = file.list(code)?;
    let mut all = Vec::new();
    file.read(&list, |item| {
        if let Item::Name(name) = item
            && matches!(name.form, Form::Domain | Form::Full)
        {
            all.push(name.text.to_owned());
        }
    })?;
    Ok(all)
}

/// Ten rules as users have them. Those of another tenth name other lists, names, ports and users.
fn ten(tenth: usize, sites: &[String], countries: &[String]) -> Vec<Value> {
    let own = |kind: &str| -> Vec<String> {
        let texts = (0..8).map(|at| format!("{kind}:service{at}.region{tenth}.example"));
        texts.collect()
    };
    let mut mixed = own("domain");
    mixed.push(format!("geosite:{}", sites[3 * tenth + 2]));
    let (ads, cn, nets) = match tenth {
        0 => ("category-ads-all", "cn", "cn"),
        _ => (&*sites[3 * tenth], &*sites[3 * tenth + 1], &*countries[tenth]),
    };
    let mut rules = vec![
        json!({"inboundTag": [format!("api{tenth}")]}),
        json!({"protocol": ["bittorrent"], "port": format!("{}-{}", 1000 + tenth, 9000 + tenth)}),
        json!({"domain": [format!("geosite:{ads}")]}),
        json!({"domain": own("full")}),
        json!({"user": [format!("guest{tenth}@example.org")], "domain": [format!("geosite:{cn}")]}),
        json!({"domain": mixed}),
        json!({"domain": [format!("keyword:tracker{tenth}"), format!("regexp:^ad{tenth}[0-9]+\\.")]}),
        json!({"domain": [format!("geosite:{cn}")], "port": "1-65535"}),
        json!({"ip": [format!("geoip:{nets}"), format!("198.18.{tenth}.0/24")]}),
        json!({"network": "udp", "port": (10_000 + tenth).to_string()}),
    ];
    for rule in &mut rules {
        rule["outboundTag"] = json!("out");
    }
    rules
}

fn make(folder: &Path) -> Outcome<()> {
    let geosite = folder.join("geosite.dat");
    let mut dice = Dice(0x5ea1_3a7e_0b5e_55ed);
    // Spread over the file. The large ones stand in the first ten rules.
    let spread = |all: Vec<String>, wanted: usize| -> Vec<String> {
        let large = [
            "cn",
            "category-ads-all",
            "geolocation-!cn",
            "geolocation-cn",
            "china-list",
            "private",
        ];
        let all: Vec<String> = all.into_iter().filter(|code| !large.contains(&&**code)).collect();
        let step = (all.len() / wanted).max(1);
        all.into_iter().step_by(step).take(wanted).collect()
    };
    let sites = spread(codes(&geosite, Kind::Names)?, 30);
    let countries = spread(codes(&folder.join("geoip.dat"), Kind::Networks)?, 10);
    if sites.len() < 30 || countries.len() < 10 {
        return Err("the files hold too few lists".into());
    }
    for tenths in [1, 10] {
        let mut rules: Vec<Value> = (0..tenths).flat_map(|at| ten(at, &sites, &countries)).collect();
        // One fits in the end, for Xray makes an error where none does, which costs it time.
        rules.pop();
        rules.push(json!({"network": "tcp,udp", "outboundTag": "out"}));
        let config = json!({
            "log": {"loglevel": "none"},
            "inbounds": [],
            "outbounds": [{"tag": "out", "protocol": "freedom"}],
            "routing": {"rules": rules},
        });
        std::fs::write(folder.join(format!("rules{}.json", tenths * 10)), config.to_string())?;
    }
    let (cn, ads) = (domains(&geosite, "cn")?, domains(&geosite, "category-ads-all")?);
    let mut text = String::new();
    for _ in 0..QUESTIONS {
        let (a, b) = (dice.below(cn.len()), dice.below(ads.len()));
        let host = match dice.below(8) {
            0 => cn[a].clone(),
            1 => format!("www.{}", cn[a]),
            2 => ads[b].clone(),
            3 => format!(
                "{}.{}.{}.{}",
                1 + dice.below(223),
                dice.below(256),
                dice.below(256),
                dice.below(256)
            ),
            // These go past all rules but the last.
            4 => format!("r{}.sn-{}.googlevideo.example", dice.below(20), dice.below(9999)),
            5 => format!("www.site{}.org", dice.below(99_999)),
            6 => format!("cdn{}.static.host{}.net", dice.below(9), dice.below(99_999)),
            _ => format!("api.service{}.example.com", dice.below(99_999)),
        };
        writeln!(text, "{host} 443")?;
    }
    std::fs::write(folder.join("questions.txt"), text)?;
    Ok(())
}

async fn ask(config: &Path, questions: &Path, rounds: usize) -> Outcome<()> {
    let text = std::fs::read(config)?;
    let name = config.display().to_string();
    let file = File {
        name: &name,
        text: &text,
    };
    let how = Options {
        strict: false,
        env: &|_| None,
    };
    let loaded = load(&[file], &how);
    let read = loaded.config.ok_or("the configuration has errors")?;
    let mut settings = Settings::from_config(&read)?;
    settings.geo_folders = config.parent().map(Path::to_owned).into_iter().collect();
    let routes = Routes::new(&settings)?;
    let mut all = Vec::new();
    for line in std::fs::read_to_string(questions)?.lines() {
        let (host, port) = line.split_once(' ').ok_or("a line has no port")?;
        let mut traits = Traits::of(Destination::tcp(Address::parse(host)?, port.parse()?));
        traits.source = Some("192.168.1.7:40000".parse()?);
        traits.local = Some("192.168.1.7:1080".parse()?);
        traits.inbound = "in".to_owned();
        traits.protocol = Some("tls".to_owned());
        all.push(traits);
    }
    for traits in &all {
        println!("{}", routes.decide(traits).await.map_or(-1, |rule| rule as i64));
    }
    let (mut times, mut sum) = (String::new(), 0);
    for _ in 0..rounds {
        for some in all.chunks_exact(ROUND) {
            let begun = Instant::now();
            for traits in some {
                sum += routes.decide(black_box(traits)).await.unwrap_or(0);
            }
            writeln!(times, "{:.1}", begun.elapsed().as_secs_f64() * 1e9 / ROUND as f64)?;
        }
    }
    black_box(sum);
    eprint!("{times}");
    Ok(())
}
