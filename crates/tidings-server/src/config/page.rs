//! The page of settings, printed from the list. A test compares it with `docs/`.

use super::settings::{Form, SETTINGS};
use std::fmt::Write;

fn page() -> String {
    let mut page = String::from(
        "# Configuration\n\nWritten by the test `docs_page_of_settings_matches_the_code` (`cargo xtask docs`); \
         do not edit.\n\n\
         Every setting has a default; none has to be written. A flag wins over an environment variable, that \
         over the file, that over the default. The file is TOML and is named by `--config FILE` or \
         `TIDINGS_CONFIG`. A name that is no setting is refused, in the file and among the variables that \
         begin with `TIDINGS_`.\n\n\
         | in the file | in the environment | default | what it is |\n|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let mut variable = format!("`{}`", setting.variable());
        if setting.form == Form::Secret {
            let _ = write!(variable, ", `{}_FILE`", setting.variable());
        }
        let _ = writeln!(
            page,
            "| `{}` | {variable} | `{}` | {} {} |",
            setting.path,
            setting.default,
            setting.meaning,
            form(setting.form)
        );
    }
    page.push_str(NAMED);
    page
}

const fn form(form: Form) -> &'static str {
    match form {
        Form::Text | Form::Secret => "Text.",
        Form::Number => "A whole number.",
        Form::Flag => "`true` or `false`.",
        Form::Texts => "A list of texts; in the environment with commas between.",
        Form::Numbers => "A list of numbers; in the environment with commas between.",
    }
}

const NAMED: &str = r#"
A variable that ends in `_FILE` names a file that holds the value.

## Settings by name

These have a place for each queue, kind and policy, and a list of event types and of subscriptions, in the file
only.

```toml
[queues.bulk]
workers = 4                # attempts in flight at once in this queue

[kinds."http.call"]
policy = "patient"         # a policy of this file, or a preset
queue = "bulk"             # whose workers take it
time_limit_ms = 30000      # hard limit of one attempt

[policies.patient]
version = 1                # raise it when anything below changes
preset = "webhook"         # what is left out comes from there
attempts = 12
backoff = { first_ms = 1000, factor = 2.0, cap_ms = 900000 }   # or { steps_ms = [5000, 300000] }
jitter = { percent = 10 }  # or "none", "full", { plus_ms = 9000 }
unknown = "retry"          # or "hold": what an unknown outcome does
unknown_delay_ms = 60000
snooze_max_ms = 36000000
snoozes_max = 1000
crashes_max = 5
age_max_ms = 432000000     # give up after this age
retryable_statuses = [404] # 4xx to retry besides 408, 409, 421, 425 and 429

[[event_types]]
name = "order.paid"        # dotted words; nothing is recorded of a type that is not declared
description = "An order was paid."
exposure = "external"      # or "internal", the default: endpoints outside never learn of it

[[subscriptions]]
name = "search"
pattern = "order.*"        # `*` is one word, and as the last word one or more
job = "search.index"       # a kind that some program carries out; or expanded = "NAME"
filter = [{ field = "order.status", equals = "paid" }, { field = "country", prefix = "D" }]
coalesce = true            # within one batch the latest event of a subject stands for the ones before it
```

`serve` declares the event types and subscriptions in the database when it starts, over what is there under the
same name; what is no longer in the file stays until `tidings subscriptions remove` takes it away. A subscription
that matches no declared type, or whose jobs no program carries out, fails the start. `docs/events.md` says what
all of it means.

The presets are `default`, `mail`, `webhook`, `invitation`, `import-alert`, `full-jitter` and `periodic`.

## The admin key

`TIDINGS_ADMIN_KEY`, or a file that `TIDINGS_ADMIN_KEY_FILE` names, is accepted as an admin key and stored
nowhere. Without it the first start on a database makes a key, stores its hash, and prints it once. Who lost
that key sets `TIDINGS_ADMIN_KEY`.
"#;

#[test]
fn docs_page_of_settings_matches_the_code() {
    crate::docs_page::check("config.md", &page());
}

#[test]
fn the_example_of_the_page_is_taken() {
    let example = NAMED.split("```").nth(1).unwrap().trim_start_matches("toml");
    super::written::table(example, "the page").unwrap();
}

#[test]
fn the_page_names_every_preset() {
    for preset in tidings::Preset::ALL {
        assert!(NAMED.contains(&format!("`{}`", preset.name())), "{}", preset.name());
    }
}
