// Runs a program that ends by itself.

import { spawn } from "node:child_process";

import { LimitError, within } from "./waiting.mjs";

/** The status and the output of a run; throws where it does not end by itself within the limit. */
export async function runProgram(program, args) {
  const command = [program, ...args].join(" ");
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const said = { stdout: [], stderr: [] };
  for (const name of ["stdout", "stderr"]) child[name].on("data", (bytes) => said[name].push(bytes));
  const text = (name) => Buffer.concat(said[name]).toString("utf8");
  const ended = new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (status, signal) => done({ status, signal }));
  });
  try {
    const { status, signal } = await within(command, ended);
    if (signal) throw new Error(`${command}: ended by ${signal}\n${text("stderr")}`);
    return { status, stdout: text("stdout"), stderr: text("stderr") };
  } catch (error) {
    if (error instanceof LimitError) throw new LimitError(`${error.message}\n${text("stderr")}`);
    throw error;
  } finally {
    child.kill("SIGKILL");
  }
}
