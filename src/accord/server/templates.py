class Template:
    def __init__(self,t): self.text=t; self.variables=()
