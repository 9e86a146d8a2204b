use crate::args::{SchemaArgs, SchemaName};
use crate::{output, schemas, table};
use clap::ValueEnum;
use std::process::ExitCode;

pub(crate) fn schema(args: &SchemaArgs) -> ExitCode {
    let all = SchemaName::value_variants();
    let name = |schema: &SchemaName| {
        let value = schema.to_possible_value();
        value.map(|v| v.get_name().to_owned()).unwrap_or_default()
    };
    match args.name {
        Some(schema) => output::json_value(&schemas::schema(schema)),
        None if args.json => {
            let object: serde_json::Map<_, _> = all
                .iter()
                .map(|schema| (name(schema), schemas::schema(*schema)))
                .collect();
            output::json_value(&object);
        }
        None => {
            let rows: Vec<[String; 2]> = all
                .iter()
                .map(|schema| {
                    let help = schema
                        .to_possible_value()
                        .and_then(|v| Some(v.get_help()?.to_string()));
                    [name(schema), help.unwrap_or_default()]
                })
                .collect();
            output::print(&table::table(["name", "describes"], &rows));
        }
    }
    ExitCode::SUCCESS
}
