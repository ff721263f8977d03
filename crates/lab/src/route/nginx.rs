//! nginx as a front.

use std::path::PathBuf;

use crate::peer::program::{self, INSTALLER};

/// The program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Nginx {
    pub(super) program: PathBuf,
    /// The file of the module for streams, where that is not built in.
    pub(super) stream_module: Option<String>,
}

/// Looks for nginx on PATH; with `streams` it must be able to hand connections on by server name.
///
/// # Errors
/// What is missing, for the reader.
pub(super) fn find(streams: bool) -> Result<Nginx, String> {
    let program = program::on_path("nginx").map_err(|why| format!("nginx is {why}"))?;
    let mut stream_module = None;
    if streams {
        stream_module = module(&program::says_aside(&program, "-V")?)?;
        if let Some(file) = stream_module.as_ref().filter(|file| !PathBuf::from(file).is_file()) {
            return Err(format!(
                "nginx has no module for streams at {file}; {INSTALLER} gets it"
            ));
        }
    }
    Ok(Nginx { program, stream_module })
}

/// The file of the module for streams out of the build words of nginx; `None` if it is built in.
fn module(build: &str) -> Result<Option<String>, String> {
    let words = || build.split_whitespace();
    if words().any(|word| word == "--with-stream") {
        return Ok(None);
    }
    if !words().any(|word| word == "--with-stream=dynamic") {
        return Err("this nginx is built without streams".to_owned());
    }
    let folder = words().find_map(|word| word.strip_prefix("--modules-path="));
    let folder = folder.unwrap_or("/usr/lib/nginx/modules");
    Ok(Some(format!("{folder}/ngx_stream_module.so")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_found_in_the_build_words() {
        assert_eq!(
            module("nginx version: x\nconfigure arguments: --with-stream --y"),
            Ok(None)
        );
        assert_eq!(
            module("--modules-path=/a/b --with-stream=dynamic"),
            Ok(Some("/a/b/ngx_stream_module.so".to_owned()))
        );
        assert!(module("--with-http_ssl_module").is_err());
    }
}
