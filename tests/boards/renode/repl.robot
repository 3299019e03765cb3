*** Settings ***
Suite Setup       Setup
Suite Teardown    Teardown
Test Setup        Reset Emulation
Test Teardown     Test Teardown
Resource          ${RENODEKEYWORDS}
Resource          board.resource

*** Test Cases ***
The Prompt Imports Picotorch And Runs A Model
    Load Board    ${CASES}/board.repl    ${REPL_FIRMWARE}    ${CASES}/small.job
    Every Memory Should Be There
    Watch Uart
    Start Emulation
    Wait For Prompt On Uart    >>>
    ${commands}=    Read Lines    ${CASES}/repl.commands
    FOR    ${command}    IN    @{commands}
        Write Line To Uart    ${command}
    END
    Wait For Lines    ${CASES}/repl.lines
    Write Line To Uart    _board.exit(0)
    Run Should End Well
