from collections import Counter


class FileReport:
    def execute(self, params):
        with open(params["input_path"], encoding="utf-8") as source:
            words = Counter(source.read().lower().split())
        with open(params["output_path"], "w", encoding="utf-8") as report:
            for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0])):
                report.write(f"{count}\t{word}\n")
        return {"words": sum(words.values()), "distinct": len(words), "report": params["output_path"]}
