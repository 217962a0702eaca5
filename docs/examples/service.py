"""A web service that explains texts: one process, one model, the requests of all users in shared batches.

pip install "pertinent[app]"
uvicorn service:app --app-dir docs/examples

curl localhost:8000/explain -H 'Content-Type: application/json' -d '{"text": "slow, then wonderful"}'
"""

import asyncio

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import pertinent

app = FastAPI()
service = pertinent.Service(pertinent.load("sentiment"))


class Question(BaseModel):
    """Request of a user."""

    text: str
    budget: int = 200


@app.post("/explain")
async def explain(question: Question) -> dict[str, object]:
    """The prediction, and the most important words with standard errors.

    A user who goes away cancels the work.
    """
    try:
        future = service.submit(question.text, budget=question.budget)
        found = await asyncio.wrap_future(future)
    except pertinent.PertinentError as error:
        raise HTTPException(422, str(error)) from error
    return {
        "class": found.target_name,
        "probability": float(found.prediction.values[found.target]),
        "words": found.to_dataframe().to_dict("records"),
    }
