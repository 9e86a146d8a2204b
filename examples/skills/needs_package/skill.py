import humanize


class NeedsPackage:
    def execute(self, params):
        return {"size": humanize.naturalsize(params["bytes"], binary=True)}
