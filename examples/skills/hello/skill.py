class Hello:
    def execute(self, params):
        return {"greeting": f"Hello, {params['name']}!"}
